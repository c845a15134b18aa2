import type { EventSink } from '../../index.ts';

/**
 * Bars on a terminal, plain lines elsewhere, only warnings when quiet. `rowsOnStdout`: the command writes
 * rows to stdout while it runs. They may reach the same terminal (through `head`, for example), and bars
 * would move the cursor over them, so plain lines are used.
 */
export async function openProgress(
  { quiet, rowsOnStdout }: { readonly quiet: boolean; readonly rowsOnStdout: boolean },
  write: (line: string) => void,
): Promise<Progress> {
  if (quiet) return (await import('./lines.ts')).quietProgress(write);
  const isTerminal = process.stderr.isTTY && process.env.TERM !== 'dumb' && !rowsOnStdout;
  return isTerminal
    ? (await import('./bars.ts')).barProgress(process.stderr)
    : (await import('./lines.ts')).lineProgress(write);
}

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
