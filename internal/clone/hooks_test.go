package clone

import "context"

// hooks is a Consumer that does something at chosen moments before another does its work.
type hooks struct {
	Consumer
	take   func(Record) error
	accept func(State) error
}

func (h *hooks) Take(ctx context.Context, r Record) error {
	if h.take != nil {
		if err := h.take(r); err != nil {
			return err
		}
	}
	return h.Consumer.Take(ctx, r)
}

func (h *hooks) Accept(ctx context.Context, s State) error {
	if h.accept != nil {
		if err := h.accept(s); err != nil {
			return err
		}
	}
	return h.Consumer.Accept(ctx, s)
}
