package redisstore

// Keys lists the lock's keys, for tests that look behind the Store.
func (s *Store) Keys() []string { return s.keys }
