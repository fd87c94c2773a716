package crd

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What azureCredentials and their neighbours can be.
const (
	azureAccount  = "storageAccount: {name: s, key: account}"
	azureKey      = azureAccount + ", storageKey: {name: s, key: key}"
	azureToken    = "storageSasToken: {name: s, key: token}"
	azureAll      = "connectionString: {name: s, key: all}"
	azureIdentity = "inheritFromAzureAD: true"
	azureThere    = "endpoint: 'https://a.blob.core.windows.net'"
)

// atAzure is a store in a container, with credentials and what stands beside them.
type atAzure struct{ credentials, more string }

func (s atAzure) spec(bucket string) string {
	spec := "{bucket: " + bucket + ", azureCredentials: {" + s.credentials + "}"
	if s.more != "" {
		spec += ", " + s.more
	}
	return spec + "}"
}

func judgeAzure(t *testing.T, cases map[atAzure]string) {
	t.Helper()
	c := api(t)
	for s, refused := range cases {
		t.Run(s.credentials+"; "+s.more, func(t *testing.T) {
			u := cluster(t, "stored", "backup: {objectStore: "+s.spec("back-ups")+"}")
			judge(t, c.Create(context.Background(), u, client.DryRunAll), refused)
		})
	}
}

func TestRulesForCredentialsOfAzure(t *testing.T) {
	judgeAzure(t, map[atAzure]string{
		{azureKey, ""}:                            "",
		{azureKey, azureThere}:                    "",
		{azureToken, azureThere}:                  "",
		{azureToken + ", " + azureAccount, ""}:    "",
		{azureAll, ""}:                            "",
		{azureIdentity, azureThere}:               "",
		{azureIdentity + ", " + azureAccount, ""}: "",
		{"", ""}: "must be either connectionString, storageKey",
		{"inheritFromAzureAD: false", azureThere}:               "must be either connectionString, storageKey",
		{azureKey + ", " + azureIdentity, ""}:                   "must be either connectionString, storageKey",
		{azureKey + ", " + azureToken, ""}:                      "must be either connectionString, storageKey",
		{"storageKey: {name: s, key: key}", ""}:                 "give storageAccount, too",
		{azureAll + ", " + azureAccount, ""}:                    "names the account already",
		{azureAll, azureThere}:                                  "stands in azureCredentials.connectionString already",
		{azureToken, ""}:                                        "storageAccount or objectStore.endpoint is needed",
		{azureIdentity, ""}:                                     "storageAccount or objectStore.endpoint is needed",
		{azureToken + ", " + azureAccount, azureThere}:          "is not needed beside objectStore.endpoint",
		{azureIdentity, "endpoint: 'http://a.store'"}:           "must be https://",
		{azureKey, "googleCredentials: {gkeEnvironment: true}"}: "give one of them",
		{azureKey, "credentials: {inheritFromIAMRole: true}"}:   "give one of them",
	})
}

func TestRulesForObjectStoresAtAzure(t *testing.T) {
	judgeAzure(t, map[atAzure]string{
		{azureKey, "path: a, storageClass: Cool, forcePathStyle: true"}:  "",
		{azureKey, "endpoint: 'https://azurite.store:10000/account'"}:    "",
		{azureKey, "endpoint: 'http://azurite.store:10000/account/'"}:    "",
		{azureKey, "encryption: {identity: {name: age, key: identity}}"}: "",
		{azureKey, "tls: {caBundleSecret: {name: s, key: ca.crt}}"}:      "",
		{azureKey, "endpoint: 'https://a.store/account/backups'"}:        "must be the URL of the storage account",
		{azureKey, "endpoint: 'https://a.store?sig=x'"}:                  "must be the URL of the storage account",
		{azureKey, "endpoint: 'a.blob.core.windows.net'"}:                "must be the URL of the storage account",
		{azureKey, "region: westeurope"}:                                 "objectStore.region goes with S3",
		{azureKey, "serverSideEncryption: AES256"}:                       "serverSideEncryption goes with S3",
		{azureKey, "forcePathStyle: false"}:                              "objectStore.forcePathStyle goes with S3",
		{azureKey, "storageClass: Archive"}:                              "Hot, Cool or Cold",
	})
	c := api(t)
	for bucket, refused := range map[string]string{"a1-b2-c3": "", "back_ups": "container of Azure",
		"back--ups": "container of Azure", "back.ups": "container of Azure"} {
		t.Run(bucket, func(t *testing.T) {
			spec := "{bootstrap: {recovery: {source: old}}, externalClusters: [{name: old, objectStore: " +
				atAzure{azureKey, ""}.spec(bucket) + "}]}"
			judge(t, c.Create(context.Background(), cluster(t, "stored", spec), client.DryRunAll), refused)
		})
	}
}
