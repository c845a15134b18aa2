import type { ProgressEvent } from '../../index.ts';
import type { Progress } from './open-progress.ts';
import { endText, iterationText, startText, warningText, type PhaseState } from './phrases.ts';

/** Prints a line at the start and end of each phase, and for each iteration; for logs and pipes. */
export function lineProgress(write: (line: string) => void): Progress {
  const phases = new Phases();
  return {
    onEvent: (event) => {
      if (event.type === 'iteration') write(iterationText(event));
      else if (event.type === 'note') write(event.text);
      else if (event.type === 'warning') write(warningText(event.text));
      else if (event.type !== 'plan') {
        const { state, begins } = phases.see(event);
        if (begins && !state.ended) write(startText(state));
        if (state.ended) write(endText(state));
      }
    },
    expect: (phase, total) => phases.expect(phase, total),
    note: (text) => write(`factorflow: ${text}`),
    close: (outcome) => {
      const open = phases.closeAll();
      if (outcome === 'done') for (const state of open) write(endText(state));
    },
  };
}

/** Prints only warnings. */
export function quietProgress(write: (line: string) => void): Progress {
  return {
    onEvent: (event) => {
      if (event.type === 'warning') write(warningText(event.text));
    },
    expect: () => {},
    note: () => {},
    close: () => {},
  };
}

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
