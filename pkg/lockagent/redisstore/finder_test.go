package redisstore

import "testing"

// What a node leaves out of an address is as it is for itself.
func TestAddressesThatNodesName(t *testing.T) {
	for _, tc := range []struct{ from, to, want string }{
		{"10.0.0.1:6379", "10.0.0.2:6380", "10.0.0.2:6380"},
		{"10.0.0.1:6379", ":6380", "10.0.0.1:6380"},
		{"10.0.0.1:6379", "?:6380", "10.0.0.1:6380"},
		{"[::1]:6379", ":6380", "[::1]:6380"},
		{"redis.example:6379", "redis-2.example:6379", "redis-2.example:6379"},
	} {
		if got := reachable(tc.from, tc.to); got != tc.want {
			t.Errorf("%s names %s: got %s, want %s", tc.from, tc.to, got, tc.want)
		}
	}
}
