import type { ProfileReport } from '../../../api/reports/profile.ts';
import { formatBytes } from '../../../engine/format.ts';
import type { Section } from '../section.ts';
import { barChart } from './bars.ts';

/** The wall time of the whole command by phase. */
export function timeSection({ seconds, phases }: ProfileReport): Section {
  const bars = phases.map(({ phase, seconds: own }) => ({
    name: phase,
    value: own,
    text: `${own.toFixed(2)} s`,
  }));
  const longest = phases.reduce((best, one) => (one.seconds > best.seconds ? one : best), phases[0]);
  const rows = phases.map(
    ({ phase, seconds: own, cpuSeconds, bytesRead, bytesWritten, bytesUp, bytesDown }) => [
      phase,
      own.toFixed(3),
      `${((100 * own) / seconds).toFixed(1)} %`,
      (cpuSeconds / Math.max(own, 1e-9)).toFixed(1),
      ...[bytesRead, bytesWritten, bytesUp, bytesDown].map((bytes = 0) =>
        bytes < 1024 ? '' : formatBytes(bytes),
      ),
    ],
  );
  const summary = `${seconds.toFixed(2)} s in all; most of it ${longest.phase}, ${longest.seconds.toFixed(2)} s.`;
  return {
    heading: 'Time',
    text: 'Each moment counts for one phase, so that the phases add up to the wall time of the command.',
    charts: [
      barChart('Wall time by phase', summary, bars, 2, {
        head: ['phase', 'seconds', 'share', 'cores busy', 'read', 'written', 'to devices', 'from devices'],
        rows,
      }),
    ],
  };
}
