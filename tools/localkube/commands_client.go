package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
)

func kubeconfigCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := s.open()
			if err != nil {
				return err
			}
			fmt.Println(c.Kubeconfig())
			return nil
		},
	}
}

func kubectlCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "kubectl -- ARGS...", Short: "Run the kubectl of the cluster's version",
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := s.open()
			if err != nil {
				return err
			}
			return become(append([]string{c.Kubectl()}, args...), "KUBECONFIG="+c.Kubeconfig())
		},
	}
}

// resolve gives one command the cluster's name server, in a mount namespace of
// its own, so that nobody else on the machine sees it.
const resolve = `mount --bind "$1" /etc/resolv.conf && shift && exec "$@"`

func execCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "exec -- COMMAND...",
		Short: "Run a command of this machine inside the cluster's network, with its DNS",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := s.open()
			if err != nil {
				return err
			}
			argv := []string{"nsenter", "--net=" + c.Gateway().NetnsPath(), "--", "unshare", "--mount",
				"/bin/sh", "-c", resolve, "sh", c.Path("resolv.conf")}
			return become(append(argv, args...), "KUBECONFIG="+c.Kubeconfig())
		},
	}
}

// become replaces localkube by another program, whose exit code is then ours.
func become(argv []string, env string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("running %s: %w", path, syscall.Exec(path, argv, append(os.Environ(), env)))
}
