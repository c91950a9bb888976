package lockagent

// SetRandom replaces the source of all jitter. 0.5 makes every interval exactly
// TTL/3.
func (a *Agent) SetRandom(random func() float64) { a.random = random }
