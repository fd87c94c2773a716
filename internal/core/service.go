package core

// Service is a Service of the Cluster's own that was seen, and leads to one of its roles.
type Service struct {
	Name, UID string
	Deleting  bool
	// Wanted tells whether the spec asks for it.
	Wanted bool
}

// DeleteService deletes this very Service.
type DeleteService struct{ Name, UID string }

func (DeleteService) effect() {}

func (e DeleteService) String() string {
	return "delete the Service " + e.Name + ": the spec does not ask for it"
}
