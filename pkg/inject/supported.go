package inject

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkSupported refuses what is understood but not built yet. Ignoring it would
// be a run that is protected otherwise than its author believes. It is told also
// where something else is wrong with the key, so that nobody mends that in vain.
func (p *parser) checkSupported() {
	for _, a := range Annotations {
		value, ok := p.meta.Annotations[a.Key]
		if !ok {
			continue
		}
		switch {
		case a.Unsupported == "*":
			p.forbid(a.Key, "is not supported yet: remove it")
		case slices.Contains(strings.Split(a.Unsupported, ", "), value):
			p.forbid(a.Key, fmt.Sprintf("%q is not supported yet: remove the key, which means %s", value, strings.ReplaceAll(a.Default, "`", `"`)))
		}
	}
}

func (p *parser) forbid(key, message string) {
	p.errs = append(p.errs, field.Forbidden(annotationPath(key), message))
}
