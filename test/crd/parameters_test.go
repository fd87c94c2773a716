package crd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/mysql"
)

func TestParametersThatAreTheUsersAreAccepted(t *testing.T) {
	c := api(t)
	spec :=
		`{mysql: {parameters: {max_connections: "500", innodb-buffer-pool-size: 1G, Sort_Buffer_Size: 1M, validate_password.policy: LOW, skip-external-locking: "", innodb_flush_method: O_DIRECT, log_bin_trust_function_creators: "ON"}}}`
	judge(t, c.Create(context.Background(), cluster(t, "good", spec), client.DryRunAll), "")
}

// Every entry of the table, so that none of its reasons breaks the policy.
func TestEveryOwnedParameterIsRefusedWithItsNameAndReason(t *testing.T) {
	c := api(t)
	for _, p := range mysql.OwnedParameters {
		name := strings.ReplaceAll(p.Name, "*", "anything")
		spec := fmt.Sprintf("{mysql: {parameters: {%s: x}}}", name)
		err := c.Create(context.Background(), cluster(t, "owned", spec), client.DryRunAll)
		judge(t, err, name+" is not yours to set (")
	}
}

func TestOwnedParametersAreKnownInEverySpelling(t *testing.T) {
	c := api(t)
	for name, refused := range map[string]string{
		"{GTID-Mode: x}": "GTID-Mode is not yours to set (replication, elections and rejoining rest " +
			"on GTIDs); remove it",
		"{loose_read-only: x}": "loose_read-only is not yours to set (only the one instance that was " +
			"promoted may be writable); remove it",
		"{skip-log-bin: ''}": "skip-log-bin is not yours to set (without a binary log nobody can " +
			"replicate); remove it",
		"{disable_loose_gtid_mode: ''}": "disable_loose_gtid_mode is not yours to set",
		"{maximum-port: '1'}":           "maximum-port is not yours to set",
		"{port: '1', datadir: /x}":      "; remove them",
		"{Innodb-Flush_method: NoSync}": "Innodb-Flush_method must be one of fsync, o_dsync, o_direct, " +
			"o_direct_no_fsync (an acknowledged write must survive a crash)",
		"{innodb_flush_method: '3'}":     "innodb_flush_method must be one of",
		`{"a b": x}`:                     `not the name of a parameter: "a b"`,
		`{"a\ngtid_mode": x}`:            "not the name of a parameter",
		`{"": x}`:                        "not the name of a parameter",
		`{sql_mode: "x\ngtid_mode=OFF"}`: "the value of sql_mode has more than one line",
	} {
		t.Run(name, func(t *testing.T) {
			judge(t, c.Create(context.Background(), cluster(t, "owned", "{mysql: {parameters: "+name+"}}"),
				client.DryRunAll), refused)
		})
	}
}

// The instance's own files lie beside the data directory.
func TestAFileOutsideOfTheDataIsRefused(t *testing.T) {
	c := api(t)
	const refused = " must name files of the data directory, without a / (it would write wherever it is told, over " +
		"the instance's own files too)"
	for name, r := range map[string]struct{ value, refused string }{
		"innodb_temp_data_file_path":  {"../cnmsql/state.json:12M:autoextend", "innodb_temp_data_file_path" + refused},
		"skip_innodb_data_file_path":  {"ibdata1:12M;/tmp/x:12M", "skip_innodb_data_file_path" + refused},
		"innodb-temp_data_file_path":  {"ibtmp1:12M:autoextend:max:5G", ""},
		"loose_innodb_data_file_path": {"ibdata1:12M", "loose_innodb_data_file_path is not yours to set"},
	} {
		spec := fmt.Sprintf("{mysql: {parameters: {%s: '%s'}}}", name, r.value)
		judge(t, c.Create(context.Background(), cluster(t, "filed", spec), client.DryRunAll), r.refused)
	}
}

func TestAChangeIsJudged(t *testing.T) {
	c := api(t)
	ctx := context.Background()
	u := cluster(t, "judged", "{}")
	if err := c.Create(ctx, u); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, u) })
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"mysql":{"parameters":{"server_id":"1"}}}}`))
	judge(t, c.Patch(ctx, u.DeepCopy(), patch), "server_id is not yours to set (it must differ between all "+
		"instances); remove it")
}

// mysqld starts on data with the value only with which it made them. Until there are data, a mistake
// can be corrected.
func TestWhatShapesTheDataDirectoryStaysOnceThereAreData(t *testing.T) {
	c := api(t)
	ctx := context.Background()
	u := cluster(t, "shaped", `{mysql: {parameters: {lower_case_table_names: "1"}}}`)
	if err := c.Create(ctx, u); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(ctx, u) })
	patch := func(parameters string) error {
		return c.Patch(ctx, u.DeepCopy(), client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"mysql":{"parameters":`+parameters+`}}}`)), client.DryRunAll)
	}
	judge(t, patch(`{"lower_case_table_names":"0"}`), "")
	judge(t, patch(`{"innodb-page-size":"8k"}`), "")
	established := client.RawPatch("application/merge-patch+json",
		[]byte(`{"status":{"establishedAt":"2026-11-26T22:00:00.000000Z"}}`))
	if err := c.Status().Patch(ctx, u.DeepCopy(), established); err != nil {
		t.Fatal(err)
	}
	for parameters, refused := range map[string]string{
		`{"lower_case_table_names":"2"}`: `lower_case_table_names shapes the data directory and stays "1"`,
		`{"lower_case_table_names":null}`: `lower_case_table_names shapes the data directory and stays "1": ` +
			`mysqld may not start on the data with another value; set it back, or make a new Cluster`,
		`null`:                       `lower_case_table_names shapes the data directory and stays "1"`,
		`{"Innodb_Page-Size":"4k"}`:  `innodb_page_size shapes the data directory and stays "16384"`,
		`{"innodb_page_size":"32K"}`: `innodb_page_size shapes the data directory and stays "16384"`,
		`{"innodb_page_size":"16m"}`: `innodb_page_size shapes the data directory and stays "16384"`,
		// Another spelling of the same, and of what is so anyway.
		`{"lower_case_table_names":null,"Lower-Case-Table-Names":"1 "}`: "",
		`{"innodb_page_size":"16384"}`:                                  "",
		`{"innodb_page_size":"16k"}`:                                    "",
		`{"Innodb-Page_Size":" 16K"}`:                                   "",
		// mysqld starts with a file more behind its own.
		`{"innodb_data_file_path":"ibdata1:12M;ibdata2:12M:autoextend"}`: "",
		`{"max_connections":"500","character_set_server":"latin1"}`:      "",
	} {
		t.Run(parameters, func(t *testing.T) { judge(t, patch(parameters), refused) })
	}
	spelt := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"mysql":{"parameters":{"innodb_page_size":"16k"}}}}`))
	judge(t, c.Patch(ctx, u.DeepCopy(), spelt), "")
	judge(t, patch(`{"innodb_page_size":"16384"}`), "")
	judge(t, patch(`{"innodb_page_size":null}`), "")
	judge(t, patch(`{"innodb_page_size":"8k"}`), `innodb_page_size shapes the data directory and stays "16384"`)
}
