# The commands of this project. `make help` lists them.

.PHONY: help demo build test race lint bench bench-long bench-peers diagram clean

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

diagram: ## draw the state diagram in the README from the transition table
	go test -count=1 -run TestStateDiagramInREADME . -update
