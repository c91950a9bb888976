package lockagent

import (
	"encoding/json"
	"net/http"
)

// problem is the body of every error of the API: RFC 9457 with the type
// about:blank, for which the title is that of the HTTP status.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"` // what is wrong with this request, and what would be right
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	writeJSON(w, "application/problem+json", status,
		problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail})
}

func writeJSON(w http.ResponseWriter, contentType string, status int, body any) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever hung up needs no answer
}
