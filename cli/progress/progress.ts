import type { EventSink } from '../../index.ts';

/** Shows on stderr how a run goes on. */
export interface Progress {
  readonly onEvent: EventSink;
  /** About how many units a phase will have when its events can't know. */
  expect(phase: string, total: number): void;
  /** Says something between the lines. */
  note(text: string): void;
  /** Ends the display and gives the terminal back; phases that are still open have finished, or were cut off. May be called again. */
  close(outcome: 'done' | 'failed'): void;
}
