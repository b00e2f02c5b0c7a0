# The commands of this project. `make help` lists them.

.PHONY: help demo build test race lint bench bench-long bench-peers diagram

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

# Each benchmark prints ratios taken in one run; figures are only worth something
# while nothing else runs on the machine.
BENCH = go test -run '^$$' -benchtime 1x -timeout 30m

bench: ## intake, log, read models, restart, finished jobs and memory, as ratios
	$(BENCH) -bench Webhook ./ingress/telegram
	go test -run '^$$' -bench 'Append$$|ReadAll' -benchtime 1s ./engine/eventlog/sqlite
	go test -run '^$$' -bench 'AppendToBigLog/callers=(64|256)' -benchtime 20000x -timeout 30m ./engine/eventlog/sqlite
	$(BENCH) -bench 'Rebuild|CatchUp' ./projections
	$(BENCH) -bench 'Restart|Finish|Memory' ./cmd/leadonce

bench-long: ## the same with 5 million streams, 1 million jobs and 10 minutes of load
	LEADONCE_BENCH_STREAMS=5000000 go test -run '^$$' -bench 'AppendToBigLog/callers=(64|256)' -benchtime 20000x -timeout 60m ./engine/eventlog/sqlite
	LEADONCE_BENCH_JOBS=1000000 LEADONCE_BENCH_SECONDS=600 $(BENCH) -bench 'Restart|Memory' ./cmd/leadonce

bench-peers: ## beside PostgreSQL and River; needs PostgreSQL 15 or later, or skips
	cd ingress/telegram/peers && $(BENCH) -bench . -v .

diagram: ## draw the state diagram in the README from the transition table
	go test -count=1 -run TestStateDiagramInREADME . -update
