package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestKubectlsFlagsAreItsOwn(t *testing.T) {
	for line, want := range map[string]kubectlCall{
		"":                              {name: "demo", cluster: "manager", help: true},
		"--help":                        {name: "demo", cluster: "manager", help: true},
		"--cluster w1":                  {name: "demo", cluster: "w1", help: true},
		"get pods -n team --name x":     {name: "demo", cluster: "manager", args: strings.Fields("get pods -n team --name x")},
		"-n team get pods -h":           {name: "demo", cluster: "manager", args: strings.Fields("-n team get pods -h")},
		"--cluster w1 get --cluster w2": {name: "demo", cluster: "w1", args: strings.Fields("get --cluster w2")},
		"--name=b --cluster=w2 version": {name: "b", cluster: "w2", args: []string{"version"}},
	} {
		t.Run(line, func(t *testing.T) {
			call, err := parseKubectl(strings.Fields(line), "demo")
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(call).To(Equal(want))
		})
	}
	for _, line := range []string{"--cluster", "--name= get pods"} {
		_, err := parseKubectl(strings.Fields(line), "demo")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("flag needs a value: --")))
	}
}
