package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/leadonce/leadonce/engine/eventlog"
)

// systemClock is the time of the machine.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// randomIDs makes event ids of 122 random bits.
type randomIDs struct{}

func (randomIDs) New() eventlog.EventID { return eventlog.EventID(uuid.New()) }
