package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// address is where a Redis listens, and the login that its URL may contain.
type address struct {
	network            string // tcp or unix
	addr               string // host:port or the socket's path
	db                 int
	username, password string
}

const defaultPort = "6379"

var errForms = errors.New("it must look like redis://HOST:PORT[/DB] or unix:///PATH[?db=DB]")

// parseAddress reads a Redis URL. Its errors never contain more of the URL than
// the part that is wrong, and never the login: net/url's own errors do.
func parseAddress(raw string) (address, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return address{}, fmt.Errorf("the redis url is malformed: %w; what is special in a login must be escaped, such as # as %%23", errForms)
	}
	a, err := addressOf(u)
	if err != nil {
		return address{}, fmt.Errorf("the redis url: %w", err)
	}
	if u.User != nil {
		a.username = u.User.Username()
		a.password, _ = u.User.Password()
	}
	return a, nil
}

func addressOf(u *url.URL) (address, error) {
	if u.Fragment != "" {
		return address{}, errors.New(`a "#" is not allowed; in a login write it as %23`)
	}
	behind := u.RawQuery
	if u.Scheme != "unix" || u.Host != "" { // a socket's path may have one
		behind += u.Path
	}
	if strings.Contains(behind, "@") {
		return address{}, errors.New(`there is an "@" behind the host; in a login write / as %2F and ? as %3F`)
	}
	switch u.Scheme {
	case "redis":
		return tcpAddress(u)
	case "unix":
		return unixAddress(u)
	case "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster":
		return address{}, fmt.Errorf("%s:// is not supported yet; use redis:// or unix://", u.Scheme)
	default:
		return address{}, fmt.Errorf("unknown scheme: %w", errForms)
	}
}

func tcpAddress(u *url.URL) (address, error) {
	if u.Opaque != "" || u.Hostname() == "" {
		return address{}, fmt.Errorf("the host is missing: %w", errForms)
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return address{}, fmt.Errorf("port %q must be from 1 to 65535", port)
	}
	for option := range u.Query() {
		return address{}, fmt.Errorf("unknown option %q; redis:// has none", option)
	}
	a := address{network: "tcp", addr: net.JoinHostPort(u.Hostname(), port)}
	var err error
	a.db, err = database(strings.TrimPrefix(u.Path, "/"))
	return a, err
}

func unixAddress(u *url.URL) (address, error) {
	switch {
	case u.Host != "":
		return address{}, fmt.Errorf("host %q does not belong there: a socket's path starts with a third slash, as in unix:///run/redis.sock", u.Host)
	case u.Path == "" || u.Path == "/":
		return address{}, fmt.Errorf("the socket's path is missing: %w", errForms)
	}
	options := u.Query()
	for option := range options {
		if option != "db" {
			return address{}, fmt.Errorf("unknown option %q; unix:// has only db", option)
		}
	}
	a := address{network: "unix", addr: u.Path}
	var err error
	a.db, err = database(options.Get("db"))
	return a, err
}

// database reads the number of a database; empty is 0.
func database(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("database %q must be a number such as 0", text)
	}
	return int(n), nil
}
