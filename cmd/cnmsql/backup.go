package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/layout"
)

func backupCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "backup", Short: "What the Job of a Backup runs"}
	cmd.AddCommand(&cobra.Command{Use: "run", Short: "Take the backup that the Pod was made for", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := slog.New(slog.NewJSONHandler(os.Stdout, nil))
			ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
			conf, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				return err
			}
			kube, err := client.New(apiconn.Bound(conf), client.Options{Scheme: scheme})
			if err != nil {
				return err
			}
			ctx, stop := untilTerminated(cmd.Context())
			defer stop()
			boundMemory(log)
			return backupjob.Run(ctx, backupjob.Options{StoreDir: layout.StoreDir, TLSDir: layout.TLSDir,
				AccountDir: layout.BackupAccountDir, Kubernetes: apiconn.Whole(kube), Log: log})
		}})
	cmd.AddCommand(
		jobCommand("remove", "Remove the backup that the Pod was made for from the store", backupjob.Remove),
		jobCommand("remove-archive", "Remove all that the Cluster that the Pod was made for has in the store",
			backupjob.RemoveArchive),
		jobCommand("merge-archive", "Merge small parts of the archive of the Cluster that the Pod was made for",
			backupjob.MergeArchive))
	return cmd
}

func jobCommand(use, short string, do func(context.Context, string, *slog.Logger) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilTerminated(cmd.Context())
			defer stop()
			return do(ctx, layout.StoreDir, slog.New(slog.NewJSONHandler(os.Stdout, nil)))
		}}
}
