package main

import (
	"errors"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

// configure reads the variables, and the URL if it is in a file. The error
// joins one for each thing that is wrong; the Config then has what could be read.
func configure(lookup func(string) (string, bool)) (agentenv.Config, error) {
	cfg, err := agentenv.Parse(lookup)
	errs := append(each(err), unsupported(cfg)...)
	if file := cfg.Redis.URLFile; file != "" {
		cfg.Redis.URL, err = readURL(file)
		errs = append(errs, err)
	}
	return cfg, errors.Join(errs...)
}

// readURL reads the address of Redis from a file, which is a key of a Secret.
func readURL(file string) (string, error) {
	b, err := os.ReadFile(file)
	if strings.Contains(file, "://") {
		err = errors.New("must name a file; an address belongs into HOLDFAST_REDIS_URL, without a password")
	}
	if err == nil && strings.TrimSpace(string(b)) == "" {
		err = errors.New("is empty: it must hold an address such as redis://redis.example:6379")
	}
	if err != nil {
		return "", &agentenv.VarError{Name: agentenv.Prefix + "REDIS_URL_FILE", Value: file, Err: err}
	}
	return strings.TrimSpace(string(b)), nil
}

// unsupported refuses what the contract has and this version has not. To go on
// without would be a lock that does less than was asked for.
func unsupported(cfg agentenv.Config) []error {
	var errs []error
	refuse := func(wanted bool, name, value string) {
		if wanted {
			errs = append(errs, &agentenv.VarError{
				Name: agentenv.Prefix + name, Value: value, Err: errors.New("is not supported yet"),
			})
		}
	}
	refuse(cfg.Gate == agentenv.GateExec, "GATE", string(cfg.Gate))
	refuse(cfg.OnBusy == agentenv.BusySkip, "ON_BUSY", string(cfg.OnBusy))
	return errs
}
