package lockagent

// Stand-ins until files.go and metrics.go land: delete this file then.

type (
	Metrics struct{}
	Files   struct{}
)

func NewMetrics(*Status) *Metrics { return &Metrics{} }
func NewFiles(string) *Files      { return &Files{} }

func (*Files) Publish(State) error { return nil }
