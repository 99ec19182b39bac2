package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	plainField = regexp.MustCompile(`^[A-Za-z0-9_$-]+`)
	// What other notations have for the elements of a list, or for all of them.
	element = regexp.MustCompile(`^(-?[0-9]+|[0-9]*:[0-9:]*|-|\*|\?.*|@.*)$`)
)

// FieldPath reads the path of a field in an object: names joined by dots, and in
// brackets those that have dots or slashes themselves, as in
// metadata.labels[example.com/mine]. Fields of list elements have no path.
func FieldPath(text string) ([]string, error) {
	var path []string
	for rest := text; rest != "" || len(path) == 0; {
		name, after, err := firstField(rest, len(path) == 0)
		if err != nil {
			return nil, fmt.Errorf("%w: write fields joined by dots, such as spec.a.b, and names with dots in brackets, such as metadata.labels[example.com/a]", err)
		}
		path, rest = append(path, name), after
	}
	return path, nil
}

// firstField splits off the first name of a path; the first of all has no dot before it.
func firstField(text string, first bool) (name, rest string, err error) {
	if strings.HasPrefix(text, "[") && !first {
		name, rest, err = bracketed(text[1:])
	} else {
		name, rest, err = plain(text, first)
	}
	switch {
	case err != nil:
		return "", "", err
	case element.MatchString(name):
		return "", "", fmt.Errorf("%q is an element of a list, and those have no path", name)
	case name == "$":
		return "", "", errors.New("a path starts without $")
	}
	return name, rest, nil
}

func bracketed(text string) (name, rest string, err error) {
	name, rest, closed := strings.Cut(text, "]")
	switch {
	case !closed || name == "" || strings.Contains(name, "["):
		return "", "", errors.New("a bracket is not closed, or empty")
	case strings.ContainsAny(name, `'"`):
		return "", "", errors.New("names in brackets have no quotes")
	}
	return name, rest, nil
}

func plain(text string, first bool) (name, rest string, err error) {
	if !first {
		dotted, dot := strings.CutPrefix(text, ".")
		if !dot {
			return "", "", fmt.Errorf("%q cannot stand in a path", text[:1])
		}
		text = dotted
	}
	if name = plainField.FindString(text); name == "" {
		return "", "", errors.New("a field name is missing")
	}
	return name, text[len(name):], nil
}
