package policy

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"cnmsql.co/api/v1alpha1"
)

// BackupStatusName is the name of the policy on what the Job of a Backup writes into its status.
const BackupStatusName = "cnmsql-backup-status"

// byJob tells whether a request comes from the Job of the Backup that it is about, or from
// anybody else who may patch the status and not update it: a Role of a Job gives no more.
const byJob = "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':' + request.name + " +
	"'-backup' || !authorizer.group('mysql.cnmsql.co').resource('backups').subresource('status')" +
	".namespace(request.namespace).name(request.name).check('update').allowed()"

// BackupStatus holds the Job of a Backup to what it has to say: how far it is, what came of the
// backup, and what it did in the store afterwards. By the rest of the status the operator knows
// which Secrets to copy and what to remove from which store. RBAC can name the one Backup, and not
// what may be in it.
//
// The Job says once how the backup ended. Times must be written as Go writes them: the schema takes
// some that Go does not read, and nothing is done for a Backup that cannot be read.
func BackupStatus() *admissionv1.ValidatingAdmissionPolicy {
	p := newPolicy(BackupStatusName, "backups/status", admissionv1.Update)
	p.Spec.MatchConditions = []admissionv1.MatchCondition{{Name: "by-a-job", Expression: byJob}}
	p.Spec.Variables = []admissionv1.Variable{
		oldStatus, newStatus,
		{Name: "before", Expression: "variables.old.?phase.orValue('')"},
		{Name: "phase", Expression: "variables.new.?phase.orValue('')"},
		{Name: "own", Expression: fmt.Sprintf("variables.before == '%s' ? ['phase', 'reason', 'error', "+
			"'serverVersion', 'sha256', 'beginGTID', 'endGTID', 'size', 'storedSize', 'encryptedTo', 'progress', "+
			"'startedAt', 'stoppedAt'] : variables.before == '%s' ? ['retention', 'merging'] : []",
			v1alpha1.BackupRunning, v1alpha1.BackupCompleted)},
		others,
		{Name: "times", Expression: "[variables.new.?startedAt, variables.new.?stoppedAt, " +
			"variables.new.?progress.?expectedEnd, variables.new.?retention.?ranAt, " +
			"variables.new.?retention.?keptSince]"},
	}
	p.Spec.Validations = []admissionv1.Validation{
		{
			Expression: "variables.others.size() == 0",
			MessageExpression: "'the Job of a Backup tells how far it is while the phase is Running, and what it " +
				"removed and merged once it is Completed; it may not write status.' + " +
				"variables.others.join(', status.')",
		},
		{
			Expression: fmt.Sprintf("variables.phase == variables.before || variables.phase in ['%s', '%s']",
				v1alpha1.BackupCompleted, v1alpha1.BackupFailed),
			Message: "the Job of a Backup may set status.phase to Completed or Failed only",
		},
		{
			Expression: "variables.times.all(t, !t.hasValue() || t.value().matches('" + readableTime + "'))",
			Message: "times in the status of a Backup must be as 2026-11-26T14:00:00Z: startedAt, stoppedAt, " +
				"progress.expectedEnd, retention.ranAt and retention.keptSince",
		},
	}
	return p
}
