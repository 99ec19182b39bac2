package process

import (
	"bytes"
	"io"
	"os"
)

// tailBytes bounds how much of a log's end is read.
const tailBytes = 64 << 10

// Tail returns the last lines of the log, as far as they fit into 64 KiB.
func (p *Process) Tail(lines int) string { return TailFile(p.spec.Log, lines) }

// TailFile returns the last lines of a file, "" when it cannot be read.
func TailFile(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	return string(lastLines(data, lines))
}

func lastLines(data []byte, lines int) []byte {
	data = bytes.TrimRight(data, "\n")
	at := len(data)
	for range lines {
		at = bytes.LastIndexByte(data[:at], '\n')
		if at < 0 {
			return data
		}
	}
	return data[at+1:]
}
