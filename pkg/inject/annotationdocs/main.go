// Annotationdocs writes the table of docs/annotations.md, from the table that
// the webhook reads annotations by. Everything around it is written by hand.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/inject"
)

// The table stands between these lines.
const (
	begin = "<!-- begin of the generated table: go generate ./pkg/inject -->\n"
	end   = "<!-- end of the generated table -->\n"
)

func main() {
	if err := update(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func update(file string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	page, err = withTable(page)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, page, 0o644) //nolint:gosec // a page for everybody
}

// withTable puts the table in the place of the one in page.
func withTable(page []byte) ([]byte, error) {
	before, rest, ok1 := bytes.Cut(page, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		return nil, errors.New("has no lines to put the table between")
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(table()), []byte(end), after}, nil), nil
}

// table is Markdown, a row for each annotation.
func table() string {
	var b strings.Builder
	b.WriteString("| Key | Values | Default | Meaning |\n|---|---|---|---|\n")
	for _, a := range inject.Annotations {
		meaning := a.Meaning
		switch a.Unsupported {
		case "":
		case "*":
			meaning += " **Not supported yet.**"
		default:
			meaning += fmt.Sprintf(" **Not supported yet: `%s`.**", strings.ReplaceAll(a.Unsupported, ", ", "`, `"))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimPrefix(a.Key, inject.Prefix), a.Values, a.Default, meaning)
	}
	return b.String()
}
