package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// form is how the servers of an address belong together.
type form int

const (
	single   form = iota // one server
	sentinel             // the hosts are Sentinels, which know where the primary is
	cluster              // the hosts are nodes of a cluster, any of which knows where a slot is
)

// address is where a Redis is, and the login that its URL may contain.
type address struct {
	form               form
	network            string   // tcp or unix
	hosts              []string // host:port, or the socket's path
	master             string   // by which Sentinels know the primary
	db                 int
	tls                bool
	serverName         string // that the certificate must have; empty: the host's
	username, password string
}

// scheme is the part of a URL that says what the rest means.
type scheme struct {
	form form
	tls  bool
	port string // unless the URL has one
	path func(*address, string) error
}

const redisPort = "6379"

var schemes = map[string]scheme{
	"redis":           {single, false, redisPort, (*address).setDatabase},
	"rediss":          {single, true, redisPort, (*address).setDatabase},
	"redis+sentinel":  {sentinel, false, "26379", (*address).setMaster},
	"rediss+sentinel": {sentinel, true, "26379", (*address).setMaster},
	"redis+cluster":   {cluster, false, redisPort, (*address).setNoDatabase},
	"rediss+cluster":  {cluster, true, redisPort, (*address).setNoDatabase},
}

var (
	errForms = errors.New("it must look like redis://HOST:PORT[/DB], unix:///PATH[?db=DB], " +
		"redis+sentinel://HOST:PORT,HOST:PORT/MASTER[/DB] or redis+cluster://HOST:PORT,HOST:PORT; with TLS rediss")
	errMaster = errors.New("it must end with the name by which the Sentinels know the primary, as in redis+sentinel://HOST:PORT/MASTER[/DB]")
)

// parseAddress reads a Redis URL. Its errors never contain more of the URL than
// the part that is wrong, and never the login: net/url's own errors do.
func parseAddress(raw string) (address, error) {
	urls, err := parseHosts(raw)
	if err != nil {
		return address{}, fmt.Errorf("the redis url is malformed: %w; what is special in a login must be escaped, such as # as %%23", errForms)
	}
	a, err := addressOf(urls)
	if err != nil {
		return address{}, fmt.Errorf("the redis url: %w", err)
	}
	if login := urls[0].User; login != nil {
		a.username = login.Username()
		a.password, _ = login.Password()
	}
	return a, nil
}

// parseHosts reads a URL that may name several hosts, which net/url cannot, as
// one URL for each of them.
func parseHosts(raw string) ([]*url.URL, error) {
	_, after, _ := strings.Cut(raw, "://")
	before := raw[:len(raw)-len(after)]
	if end := strings.IndexAny(after, "/?#"); end >= 0 {
		after = after[:end]
	}
	behind := raw[len(before)+len(after):]
	login := strings.LastIndex(after, "@") + 1
	before, hosts := before+after[:login], strings.Split(after[login:], ",")
	urls := make([]*url.URL, len(hosts))
	for i, host := range hosts {
		var err error
		if urls[i], err = url.Parse(before + host + behind); err != nil {
			return nil, err
		}
	}
	return urls, nil
}

func addressOf(urls []*url.URL) (address, error) {
	u := urls[0]
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
	if u.Scheme == "unix" {
		return unixAddress(u)
	}
	s, ok := schemes[u.Scheme]
	if !ok {
		return address{}, fmt.Errorf("unknown scheme: %w", errForms)
	}
	return s.address(urls)
}

func (s scheme) address(urls []*url.URL) (address, error) {
	u := urls[0]
	a := address{form: s.form, network: "tcp", tls: s.tls}
	for _, u := range urls {
		host, err := hostOf(u, s.port)
		if err != nil {
			return a, err
		}
		a.hosts = append(a.hosts, host)
	}
	if s.form == single && len(urls) > 1 {
		return a, fmt.Errorf("%s:// has one host, and this has %d; several are for redis+sentinel:// and redis+cluster://", u.Scheme, len(urls))
	}
	for option := range u.Query() {
		if option != "server-name" || !s.tls {
			return a, fmt.Errorf("unknown option %q; there is only server-name, with TLS", option)
		}
	}
	a.serverName = u.Query().Get("server-name")
	return a, s.path(&a, strings.TrimPrefix(u.Path, "/"))
}

func hostOf(u *url.URL, port string) (string, error) {
	if u.Opaque != "" || u.Hostname() == "" {
		return "", fmt.Errorf("the host is missing: %w", errForms)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q must be from 1 to 65535", port)
	}
	return net.JoinHostPort(u.Hostname(), port), nil
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
	a := address{network: "unix", hosts: []string{u.Path}}
	return a, a.setDatabase(options.Get("db"))
}

// setDatabase reads the number of a database; empty is 0.
func (a *address) setDatabase(text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return fmt.Errorf("database %q must be a number such as 0", text)
	}
	a.db = int(n)
	return nil
}

// setMaster reads MASTER or MASTER/DB.
func (a *address) setMaster(path string) error {
	name, db, _ := strings.Cut(path, "/")
	if name == "" {
		return errMaster
	}
	a.master = name
	return a.setDatabase(db)
}

func (a *address) setNoDatabase(text string) error {
	if text != "" && text != "0" {
		return fmt.Errorf("database %q: a cluster has only 0, so leave it out", text)
	}
	return nil
}
