package demo

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen redraws a block of lines in place on a terminal.
type Screen struct {
	file  *os.File
	drawn int // lines of the block that is on the screen now
}

// NewScreen returns nil when the file is no terminal, or one that cannot move its cursor.
func NewScreen(file *os.File) *Screen {
	if kind := os.Getenv("TERM"); kind == "" || kind == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return &Screen{file: file}
}

// Draw replaces the block. Lines are cut to the terminal's width, and the block to its height: a line that wraps or
// scrolls away could not be replaced.
func (s *Screen) Draw(lines []string) error {
	width, height, err := term.GetSize(int(s.file.Fd()))
	if err != nil || height < 2 {
		width, height = 80, 24
	}
	if len(lines) > height-1 {
		lines = append(lines[:height-2:height-2], "…")
	}
	_, err = fmt.Fprint(s.file, frame(s.drawn, lines, width))
	s.drawn = len(lines)
	return err
}

// frame moves up over the lines drawn before, writes the new ones, and clears what is left below.
func frame(drawn int, lines []string, width int) string {
	var b strings.Builder
	if drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + cut(line, width) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
