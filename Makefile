# The commands of this project. `make help` lists them.

.PHONY: help demo build test race lint properties properties-long defects defect mutants chaos tryton bench bench-long bench-peers diagram

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: ## run it all against a CRM that misbehaves, with SIGKILLs
	go run ./cmd/leadonce demo

build: ## build the program, without cgo
	CGO_ENABLED=0 go build -trimpath -o leadonce ./cmd/leadonce

test: ## what needs nothing but Go
	go test ./...

race: ## the same with the race detector
	go test -race ./...

lint: ## formatting, vet and staticcheck, at the versions in go.mod
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run: gofmt -w .'; exit 1; }
	go vet ./...
	go tool staticcheck ./...

properties: ## every execution with two troubles (of shared operations, with one), and each plan twice; a few minutes
	LEADONCE_EXPLORE=2 go test -count=1 -timeout 20m -v -run 'NoExecution' ./properties/sim
	go test -count=1 -timeout 20m -run 'APlanIsOneRun' -cpu 1,2 ./properties/sim -replays 20000

# For example: make properties-long TIME=8h
TIME = 10m
properties-long: ## the searches with fresh seeds, one after the other, each for TIME (10m)
	LEADONCE_PROPERTIES_TIME=$(TIME) go test -count=1 -timeout 0 -v -run 'NoRun' ./properties/sim
	LEADONCE_PROPERTIES_TIME=$(TIME) go test -count=1 -timeout 0 ./properties/ports

HUNTS = 20
defects: ## plant each seeded defect, and see it caught from 20 seeds (HUNTS); prints the table; some minutes
	LEADONCE_DEFECTS=all LEADONCE_HUNTS=$(HUNTS) go test -count=1 -timeout 30m -v -run 'EverySeeded|Undamaged' ./properties/defects

defect: ## one of them, found and told: make defect NAME=RetryAfterTimeout
	@test -n "$(NAME)" || { echo 'name one of properties/defects/testdata, as in: make defect NAME=RetryAfterTimeout'; exit 2; }
	LEADONCE_DEFECTS='$(NAME)' go test -count=1 -timeout 30m -v -run 'OneDefectIsTold' ./properties/defects

mutants: ## change every condition and statement of the engine, and see who notices; about ten minutes
	go run ./properties/mutants

chaos: ## several processes over a KurrentDB that misbehaves, all with SIGKILLs, for every class of CRM; some minutes
	LEADONCE_CHAOS=all go test -count=1 -timeout 30m -v -run ManyProcesses ./cmd/leadonce

tryton: ## a real CRM, Tryton 6.0 on PostgreSQL, under SIGKILLs and lost answers; as root it installs Debian's packages; some minutes
	LEADONCE_TRYTON=1 go test -count=1 -timeout 20m -v -run Tryton ./cmd/leadonce ./engine/crm/restcrm

# Each benchmark prints ratios taken in one run; figures are only worth something
# while nothing else runs on the machine.
BENCH = go test -run '^$$' -benchtime 1x -timeout 30m

bench: ## intake, logs, read models, restart, finished jobs, memory and several processes, as ratios
	$(BENCH) -bench Webhook ./ingress/telegram
	go test -run '^$$' -bench 'Append$$|ReadAll' -benchtime 1s ./engine/eventlog/sqlite
	go test -run '^$$' -bench 'AppendToBigLog/callers=(64|256)' -benchtime 20000x -timeout 30m ./engine/eventlog/sqlite
	$(BENCH) -bench 'Rebuild|CatchUp' ./projections
	$(BENCH) -bench 'Restart|Finish|Memory|ScaleOut' ./cmd/leadonce
	go test -run '^$$' -bench Overhead ./engine/eventlog/kurrentdb

bench-long: ## the same with 5 million streams, 1 million jobs and 10 minutes of load
	LEADONCE_BENCH_STREAMS=5000000 go test -run '^$$' -bench 'AppendToBigLog/callers=(64|256)' -benchtime 20000x -timeout 60m ./engine/eventlog/sqlite
	LEADONCE_BENCH_JOBS=1000000 LEADONCE_BENCH_SECONDS=600 $(BENCH) -bench 'Restart|Memory' ./cmd/leadonce

bench-peers: ## beside PostgreSQL and River; needs PostgreSQL 15 or later, or skips
	cd ingress/telegram/peers && $(BENCH) -bench . -v .

diagram: ## draw the state diagram in the README from the transition table
	go test -count=1 -run TestStateDiagramInREADME . -update
