package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// secretsOf refuses a Pod of which a Secret that it mounts is missing, or is somebody else's: what an
// instance needs is looked at by itself, whatever else of the cluster could not be made.
func (p *prerequisites) secretsOf(ctx context.Context, c *v1alpha1.Cluster, instance string) error {
	for _, name := range resources.NeededSecrets(c, instance) {
		found, err := p.mine(ctx, c, &corev1.Secret{}, name)
		if err != nil {
			return err
		}
		if found == nil {
			return fmt.Errorf("there is no Secret %s yet, which the Pod of %s mounts", name, instance)
		}
	}
	return nil
}
