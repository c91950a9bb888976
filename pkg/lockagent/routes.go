package lockagent

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// routes are the paths of a listener. http.ServeMux would do but for its own
// errors, which are not problem+json.
type routes map[string]route

// route is the one method that a path has, and what it does.
type route struct {
	method string
	handle http.HandlerFunc
}

func (rs routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := rs[r.URL.Path]
	if !ok {
		paths := slices.Sorted(maps.Keys(rs))
		writeProblem(w, http.StatusNotFound, fmt.Sprintf("there is no %s; there are %s", r.URL.Path, strings.Join(paths, ", ")))
		return
	}
	if !found.takes(r.Method) {
		w.Header().Set("Allow", found.allow())
		writeProblem(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s takes %s, not %s", r.URL.Path, found.allow(), r.Method))
		return
	}
	found.handle(w, r)
}

// takes tells whether method is allowed: whatever can be got has a HEAD too.
func (rt route) takes(method string) bool {
	return method == rt.method || rt.method == http.MethodGet && method == http.MethodHead
}

func (rt route) allow() string {
	if rt.method == http.MethodGet {
		return "GET, HEAD"
	}
	return rt.method
}
