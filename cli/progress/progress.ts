import type { EventSink } from '../../index.ts';

/** Shows the progress of a run on stderr. */
export interface Progress {
  readonly onEvent: EventSink;
  /** Announces about how many units a phase will have, for events without a total. */
  expect(phase: string, total: number): void;
  /** Prints a line of its own. */
  note(text: string): void;
  /**
   * Ends the display and gives the terminal back; phases that are still open are finished ('done') or cut
   * off. May be called again.
   */
  close(outcome: 'done' | 'failed'): void;
}
