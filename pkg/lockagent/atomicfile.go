package lockagent

import (
	"errors"
	"os"
	"path/filepath"
)

// writeAtomic replaces a file as a whole: a reader, or the next process after a
// crash, finds the old content or the new, never a part. There is no fsync: the
// state folder is memory, which ends with the pod as its content should.
//
// What is being written has one name, not a new one each time: a crash leaves no
// second file, and an error reads the same when it comes again. So a path must
// have one writer.
func writeAtomic(path string, content []byte, mode os.FileMode) error {
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(part))
	}
	return err
}
