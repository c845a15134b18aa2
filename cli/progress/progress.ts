import type { EventSink } from '../../index.ts';

/** Shows the progress of a run on stderr. */
export interface Progress {
  readonly onEvent: EventSink;
  /** Announces the approximate number of units of a phase whose events have no total. */
  expect(phase: string, total: number): void;
  /** Prints a separate line. */
  note(text: string): void;
  /**
   * Ends the display and restores the terminal; open phases are shown as finished ('done') or interrupted.
   * May be called again.
   */
  close(outcome: 'done' | 'failed'): void;
}
