package inject

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Parse reads the annotations of a pod, or of a pod template, that is to run in
// namespace. It answers with a request, or with everything that is wrong, or
// with neither if the pod has nothing to do with Holdfast. The namespace is a
// parameter since the pods of controllers do not name theirs yet.
func Parse(meta *metav1.ObjectMeta, spec *corev1.PodSpec, namespace string, settings *Settings) (*Request, field.ErrorList) {
	p := &parser{
		meta: meta, spec: spec, namespace: namespace, settings: settings,
		req: newRequest(), refused: sets.New[string](),
	}
	keys := ownKeys(meta.Annotations)
	if keys.Len() == 0 {
		p.checkNoAgent()
		return nil, p.errs
	}
	p.read(keys)
	p.req.setDefaults()
	p.checkRules()
	p.checkPod()
	p.checkSupported()
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return p.req, nil
}

// parser collects a request and everything that is wrong with it.
type parser struct {
	meta      *metav1.ObjectMeta
	spec      *corev1.PodSpec
	namespace string
	settings  *Settings

	req     *Request
	errs    field.ErrorList
	refused sets.Set[string] // keys with a bad value: rules that need them are skipped
}

// ownKeys is the set of our keys among annotations. The status is ours, but asks
// for nothing.
func ownKeys(annotations map[string]string) sets.Set[string] {
	keys := sets.New[string]()
	for key := range annotations {
		if strings.HasPrefix(key, Prefix) && key != KeyStatus {
			keys.Insert(key)
		}
	}
	return keys
}

// read reads every key, known ones in the order of the table.
func (p *parser) read(keys sets.Set[string]) {
	unknown := keys.Clone()
	for _, a := range Annotations {
		if unknown.Has(a.Key) {
			unknown.Delete(a.Key)
			a.read(p, a.Key, p.meta.Annotations[a.Key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(unknown)) {
		p.refuse(key, "unknown key: %s", suggestion(key))
	}
}

// suggestion says which key may have been meant.
func suggestion(key string) string {
	// From four wrong letters on, or as many as there are, two keys have nothing to
	// do with each other.
	best, distance := "", min(4, len(key)-len(Prefix))
	for _, a := range Annotations {
		if d := editDistance(key, a.Key); d < distance && a.Key != KeyStatus {
			best, distance = a.Key, d
		}
	}
	if best == "" {
		return "remove it, or see docs/annotations.md for the keys that there are"
	}
	return fmt.Sprintf("did you mean %s?", best)
}

// editDistance counts the letters to insert, delete or replace to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func (p *parser) has(key string) bool {
	_, ok := p.meta.Annotations[key]
	return ok
}

// good tells whether key's value, or its default, can be relied on.
func (p *parser) good(keys ...string) bool { return !p.refused.HasAny(keys...) }

func annotationPath(key string) *field.Path {
	return field.NewPath("metadata", "annotations").Key(key)
}

// refuse says what is wrong with the value of key.
func (p *parser) refuse(key, format string, args ...any) {
	p.refused.Insert(key)
	p.errs = append(p.errs, field.Invalid(annotationPath(key), shorten(p.meta.Annotations[key]), fmt.Sprintf(format, args...)))
}

// require says that key is missing.
func (p *parser) require(key, format string, args ...any) {
	p.refused.Insert(key)
	p.errs = append(p.errs, field.Required(annotationPath(key), fmt.Sprintf(format, args...)))
}

// reject says what is wrong with the pod at path.
func (p *parser) reject(path *field.Path, value, format string, args ...any) {
	p.errs = append(p.errs, field.Invalid(path, shorten(value), fmt.Sprintf(format, args...)))
}

// shorten keeps a message readable whatever a user has pasted into a value. It
// counts what the message will show, escapes included.
func shorten(value string) string {
	const most = 40
	shown := 0
	for i, r := range value {
		shown += len(strconv.QuoteRune(r)) - len("''")
		if shown > most {
			return value[:i] + "…"
		}
	}
	return value
}
