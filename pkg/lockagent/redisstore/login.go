package redisstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// login is who the agent is to a server. It is read anew for each connection, so
// that a rotated secret needs no restart. A file that is not there is a key that
// the Secret does not have: then the URL's counts.
type login struct {
	server                     string // whose login it is, for errors
	usernameFile, passwordFile string
	username, password         string // the URL's
}

func (l login) read() (username, password string, err error) {
	if username, err = secret(l.usernameFile, l.username); err != nil {
		return "", "", fmt.Errorf("the %s username: %w", l.server, err)
	}
	if password, err = secret(l.passwordFile, l.password); err != nil {
		return "", "", fmt.Errorf("the %s password: %w", l.server, err)
	}
	return username, password, nil
}

func secret(file, otherwise string) (string, error) {
	if file == "" {
		return otherwise, nil
	}
	text, err := readTrimmed(file)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise, nil
	}
	return text, err
}

// readTrimmed reads a file without the newline that editors and shells leave at
// its end.
func readTrimmed(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}
