package lockagent

import (
	"errors"
	"os"
	"path/filepath"
)

// writeAtomic replaces a file as a whole: a reader, or the next process after a
// crash, finds the old content or the new, never a part. There is no fsync: the
// state folder is memory, which ends with the pod as its content should.
func writeAtomic(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
