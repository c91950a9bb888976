package inject

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

// reader reads the value of key into the parser's request, or refuses it.
type reader func(p *parser, key, value string)

type (
	durationField = *time.Duration
	quantityField = **resource.Quantity
)

func readOneOf[T ~string](target func(*Request) *T, allowed ...T) reader {
	return func(p *parser, key, value string) {
		if !slices.Contains(allowed, T(value)) {
			p.refuse(key, "must be %s", alternatives(allowed))
			return
		}
		*target(p.req) = T(value)
	}
}

// alternatives lists values in a sentence: "a", "b" or "c".
func alternatives[T ~string](values []T) string {
	var b strings.Builder
	for i, v := range values {
		switch {
		case i == 0:
		case i == len(values)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", string(v))
	}
	return b.String()
}

func readInteger(low, high int, target func(*Request) *int) reader {
	return func(p *parser, key, value string) {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high {
			p.refuse(key, "must be a whole number from %d to %d", low, high)
			return
		}
		*target(p.req) = n
	}
}

func readSeconds(low, high time.Duration, target func(*Request) durationField) reader {
	return func(p *parser, key, value string) {
		d, err := wholeSeconds(value)
		switch {
		case err != nil:
			p.refuse(key, "%v", err)
		case d < low || d > high:
			p.refuse(key, "must be from %s to %s", short(low), short(high))
		default:
			*target(p.req) = d
		}
	}
}

// wholeSeconds reads a duration without a fraction of a second, which no timing
// of ours is precise enough to mean.
func wholeSeconds(value string) (time.Duration, error) {
	if n, err := strconv.Atoi(value); err == nil {
		return 0, fmt.Errorf(`lacks its unit: write "%ds"`, n)
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, errors.New(`is not a duration: write whole seconds, such as "30s"`)
	}
	if whole := d.Truncate(time.Second); whole != d {
		return 0, fmt.Errorf("must be whole seconds, such as %q or %q", short(whole), short(whole+time.Second))
	}
	return d, nil
}

// short writes whole seconds without the "0s" of [time.Duration.String], as a
// user would.
func short(d time.Duration) string {
	if d%time.Hour == 0 && d != 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

func readQuantity(low, high string, target func(*Request) quantityField) reader {
	least, most := resource.MustParse(low), resource.MustParse(high)
	return func(p *parser, key, value string) {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Cmp(least) < 0 || q.Cmp(most) > 0 {
			p.refuse(key, "must be a quantity from %q to %q", low, high)
			return
		}
		*target(p.req) = &q
	}
}

// readContainers reads names of app containers, which must exist.
func readContainers(p *parser, key, value string) {
	known := sets.New[string]()
	for _, c := range p.spec.Containers {
		known.Insert(c.Name)
	}
	names := sets.New[string]()
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if !known.Has(name) {
			p.refuse(key, "no container %q: choose from %s", shorten(name), shorten(strings.Join(sets.List(known), ", ")))
			return
		}
		names.Insert(name)
	}
	p.req.Containers = sets.List(names)
}

// readProfile judges the name of a Redis profile. There are no profiles yet, so
// it is read for the message alone.
func readProfile(p *parser, key, value string) {
	if len(validation.IsDNS1123Label(value)) > 0 {
		p.refuse(key, `must be the name of a profile, such as "default"`)
	}
}
