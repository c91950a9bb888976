package redisstore_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/storetest"
)

func TestContractOnMiniredis(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness { return startMini(t).harness() })
}

func TestContractOnRedis(t *testing.T) {
	s := startReal(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		if err := s.raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return s.harness()
	})
}
