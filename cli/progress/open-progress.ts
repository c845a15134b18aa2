import type { Progress } from './progress.ts';

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
