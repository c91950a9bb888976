package memstore_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/memstore"
	"github.com/holdfast-dev/holdfast/pkg/lockagent/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		server := memstore.NewServer()
		return storetest.Harness{
			Open: func(t *testing.T, kind agentenv.Kind, resource string) lockagent.Store {
				s := memstore.NewStore(server, kind, resource)
				t.Cleanup(func() { _ = s.Close() })
				return s
			},
			Advance: func(_ *testing.T, d time.Duration) { server.Advance(d) },
		}
	})
}
