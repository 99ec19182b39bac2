package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	kueuev1beta1 "sigs.k8s.io/kueue/apis/config/v1beta1"
	kueuev1beta2 "sigs.k8s.io/kueue/apis/config/v1beta2"
	"sigs.k8s.io/yaml"
)

const accepted = "use apiVersion " + APIVersion + " with kind " + Kind +
	"; Kueue's own Configuration (config.kueue.x-k8s.io/v1beta2 or v1beta1) is read too"

// Load reads a configuration of Ferry's, or of Kueue's, from YAML or JSON. Nothing is defaulted or validated yet.
// known lists the frameworks that this Ferry can dispatch: Kueue's file may name others, which are left out.
// The notes say, one sentence each, what was not taken as it stands; log them. The error names all unknown and
// ill-typed fields at once.
func Load(data []byte, known []string) (*Configuration, []string, error) {
	document, err := singleDocument(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &content); err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: it must be a mapping of fields to values: %w", err)
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	var c *Configuration
	var notes []string
	switch {
	case kind != Kind:
		err = fmt.Errorf("apiVersion %q, kind %q is no configuration: %s", apiVersion, kind, accepted)
	case apiVersion == APIVersion:
		c, err = fromFerry(document, content)
	case apiVersion == kueuev1beta2.SchemeGroupVersion.String():
		c, notes, err = fromKueue(document, content, reflect.TypeFor[kueuev1beta2.Configuration](), known)
	case apiVersion == kueuev1beta1.SchemeGroupVersion.String():
		c, notes, err = fromKueue(document, content, reflect.TypeFor[kueuev1beta1.Configuration](), known)
	default:
		err = fmt.Errorf("apiVersion %q is not known: %s", apiVersion, accepted)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return c, notes, nil
}

func fromFerry(document []byte, content map[string]any) (*Configuration, error) {
	if err := compare(nil, content, reflect.TypeFor[Configuration]()).err(); err != nil {
		return nil, err
	}
	return decode(document)
}

func decode(document []byte) (*Configuration, error) {
	c := &Configuration{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, c); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return c, nil
}

// singleDocument returns the one YAML document in data as JSON. A second one is refused, as it would be ignored in silence.
func singleDocument(data []byte) ([]byte, error) {
	var found []byte
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is not YAML: %w", err)
		}
		document, err := yaml.YAMLToJSONStrict(raw)
		if err != nil {
			return nil, fmt.Errorf("it is not YAML: %w", err)
		}
		if string(document) == "null" {
			continue
		}
		if found != nil {
			return nil, errors.New("it has more than one YAML document: keep one")
		}
		found = document
	}
	if found == nil {
		return nil, errors.New("it is empty: " + accepted)
	}
	return found, nil
}

// err is nil when there are no differences.
func (d differences) err() error {
	var errs []error
	for _, u := range d.unknown {
		errs = append(errs, fmt.Errorf("%s: unknown field (those known here: %s)", u.path, u.known))
	}
	for _, bad := range d.bad {
		errs = append(errs, bad)
	}
	return utilerrors.NewAggregate(errs)
}
