package inject

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

const maxLockName = 200 // characters, after expansion

var (
	lockNameGrammar = regexp.MustCompile(`^[a-z0-9]([a-z0-9._/-]*[a-z0-9])?$`)
	placeholder     = regexp.MustCompile(`\{[^{}]*\}`)
)

// readLock reads the name of a lock. The name is written into the request even
// if it is bad, so that a pod with both kinds is told so.
func readLock(kind agentenv.Kind) reader {
	return func(p *parser, key, value string) {
		p.req.Agent.Kind = kind
		name, err := p.expand(value)
		if err != nil {
			p.refuse(key, "%v", err)
			return
		}
		p.req.Agent.Resource = name // made whole by setResource, once the scope is known
		problem := lockNameProblem(name)
		switch {
		case problem == "":
		case name == value:
			p.refuse(key, "%s", problem)
		default:
			p.refuse(key, "expands to %q: %s", shorten(name), problem)
		}
	}
}

// expand replaces the placeholders of a lock name, once: what a label or an
// annotation brings is never itself a template.
func (p *parser) expand(template string) (string, error) {
	var errs []error
	name := placeholder.ReplaceAllStringFunc(template, func(match string) string {
		value, err := p.placeholderValue(strings.Trim(match, "{}"))
		if err != nil {
			errs = append(errs, err)
		}
		return value
	})
	if len(errs) > 0 {
		return "", errs[0] // the rest would not fit in a line; they come up one by one
	}
	return name, nil
}

func (p *parser) placeholderValue(text string) (string, error) {
	source, key, _ := strings.Cut(text, ":")
	switch {
	case text == "namespace":
		return p.namespace, nil
	case text == "serviceaccount":
		if p.spec.ServiceAccountName == "" {
			return "default", nil // as the API server will fill it in
		}
		return p.spec.ServiceAccountName, nil
	case source == "label" && key != "":
		return lookUp(p.meta.Labels, source, key)
	case source == "annotation" && key != "":
		return lookUp(p.meta.Annotations, source, key)
	}
	return "", errors.New("knows only {label:K}, {annotation:K}, {namespace} and {serviceaccount}")
}

func lookUp(values map[string]string, source, key string) (string, error) {
	value, ok := values[key]
	if !ok {
		return "", fmt.Errorf("the pod has no %s %q: add it, or change the template", source, shorten(key))
	}
	return value, nil
}

// lockNameProblem says what is wrong with an expanded name; empty for nothing.
func lockNameProblem(name string) string {
	switch {
	case name == "":
		return `must not be empty: name the lock, such as "nightly-etl"`
	case len(name) > maxLockName:
		return fmt.Sprintf("has %d characters: use at most %d", len(name), maxLockName)
	case !lockNameGrammar.MatchString(name):
		return `use only a-z, 0-9, ".", "_", "-", "/", with a letter or digit at both ends`
	case strings.Contains(name, ".."), strings.Contains(name, "//"):
		return `must not contain ".." or "//"`
	}
	return ""
}
