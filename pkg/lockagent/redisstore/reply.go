package redisstore

import (
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// replyReader takes a script's answer apart, value by value. The first value
// that is not what it should be stays in err, and the rest reads as zero.
type replyReader struct {
	values []any
	err    error
}

func (r *replyReader) next() any {
	if len(r.values) == 0 {
		r.fail("it is too short")
		return nil
	}
	v := r.values[0]
	r.values = r.values[1:]
	return v
}

func (r *replyReader) text() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail("%v is not a text", v)
	}
	return s
}

// number reads an integer, or a text of digits: tokens come as text, since Lua's
// numbers lose digits where Redis turns them into text by itself.
func (r *replyReader) number() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("%q is not a number", v)
		}
		return n
	default:
		r.fail("%v is not a number", v)
		return 0
	}
}

// renewal reads what became of a hold.
func (r *replyReader) renewal() lockagent.Renewal {
	renewal := lockagent.Renewal{Outcome: lockagent.Outcome(r.text())}
	switch renewal.Outcome {
	case lockagent.Held:
		renewal.Token = r.number()
	case lockagent.Gone, lockagent.Taken:
	default:
		r.unknown(string(renewal.Outcome))
	}
	return renewal
}

func (r *replyReader) unknown(outcome string) { r.fail("%q is no outcome", outcome) }

func (r *replyReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("the script's answer makes no sense: "+format, args...)
	}
}
