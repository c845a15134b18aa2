import type { ProgressEvent } from '../../index.ts';
import type { PhaseState } from './phrases.ts';

type PhaseEvent = Extract<ProgressEvent, { readonly phase: string }>;

interface Phase {
  readonly name: string;
  readonly started: number;
  done: number;
  total: number | undefined;
  estimated: boolean;
  unit: string;
  seconds: number | undefined;
}

/**
 * The phases of a run, from its events. A phase without a start event starts with its first progress; a phase
 * without an end event ends with the run.
 */
export class Phases {
  readonly #open = new Map<string, Phase>();
  readonly #expected = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  expect(phase: string, total: number): void {
    this.#expected.set(phase, total);
  }

  /** Records an event. Returns the state of its phase; `begins` is true for the phase's first event. */
  see(event: PhaseEvent): { readonly state: PhaseState; readonly begins: boolean } {
    const known = this.#open.get(event.phase);
    const phase = known ?? {
      name: event.phase,
      started: this.#now(),
      done: 0,
      total: this.#expected.get(event.phase),
      estimated: true,
      unit: 'steps',
      seconds: undefined,
    };
    this.#open.set(event.phase, phase);
    if (event.unit !== undefined) phase.unit = event.unit;
    if (event.type !== 'phase-start' && event.done !== undefined) phase.done = event.done;
    if (event.type !== 'phase-end' && event.total !== undefined) {
      phase.total = event.total;
      phase.estimated = false;
    }
    if (event.type === 'phase-end') {
      phase.seconds = event.seconds;
      this.#open.delete(event.phase);
    }
    return { state: this.#state(phase), begins: known === undefined };
  }

  /** Ends the phases that are still open. */
  closeAll(): PhaseState[] {
    const open = [...this.#open.values()];
    this.#open.clear();
    return open.map((phase) => {
      phase.seconds = (this.#now() - phase.started) / 1000;
      return this.#state(phase);
    });
  }

  #state({ name, started, done, total, estimated, unit, seconds }: Phase): PhaseState {
    return {
      phase: name,
      done,
      total,
      estimated,
      unit,
      seconds: seconds ?? (this.#now() - started) / 1000,
      ended: seconds !== undefined,
    };
  }
}
