package memory_test

import (
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/eventlogtest"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

func TestConformance(t *testing.T) {
	eventlogtest.Run(t, eventlogtest.Backend{
		Open: func(testing.TB) eventlog.Log { return eventlogtest.NewFaultyLog(memory.New()) },
		Second: func(_ testing.TB, log eventlog.Log) eventlog.Log {
			return log.(*eventlogtest.FaultyLog).Log // the store is the log itself
		},
		LoseAck: func(_ testing.TB, log eventlog.Log, loss eventlogtest.Loss) {
			log.(*eventlogtest.FaultyLog).LoseAck(loss)
		},
		CutRead: func(_ testing.TB, log eventlog.Log, after int) {
			log.(*eventlogtest.FaultyLog).CutRead(after)
		},
	})
}
