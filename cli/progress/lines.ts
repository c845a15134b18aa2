import { Phases } from './phases.ts';
import { endText, iterationText, startText, warningText } from './phrases.ts';
import type { Progress } from './progress.ts';

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
