// Command credentialplugin prints the token in a file as an ExecCredential, as a cloud's credential plugin does.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// The variables that direct it: the file with the token, how long that is good for, and a file in which each call leaves a line.
const (
	tokenFile = "PLUGIN_TOKEN_FILE"
	goodFor   = "PLUGIN_GOOD_FOR"
	callsFile = "PLUGIN_CALLS_FILE"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	calls, err := os.OpenFile(os.Getenv(callsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer calls.Close()
	if _, err := fmt.Fprintln(calls, os.Getenv("KUBERNETES_EXEC_INFO")); err != nil {
		return err
	}
	token, err := os.ReadFile(os.Getenv(tokenFile))
	if err != nil {
		return err
	}
	status := map[string]any{"token": string(token)}
	if life, err := time.ParseDuration(os.Getenv(goodFor)); err == nil {
		status["expirationTimestamp"] = time.Now().Add(life).UTC().Format(time.RFC3339)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
	})
}
