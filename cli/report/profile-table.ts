import { textTable } from '../../api/inspect/text-table.ts';
import { formatBytes } from '../../engine/format.ts';
import type { ProfileReport } from '../../api/reports/profile.ts';
import { seconds3 } from '../progress/phrases.ts';

/** The wall time of a command by phase, one row each; the rows add up to the last one. */
export function profileTable({ seconds, phases }: ProfileReport): string {
  const knows = phases.some(({ bytesRead }) => bytesRead !== undefined);
  const moves = phases.some(({ bytesUp, bytesDown }) => bytesUp + bytesDown > 0);
  const head = [
    'phase',
    'time',
    'share',
    'cores busy',
    ...(knows ? ['read', 'written'] : []),
    ...(moves ? ['to devices', 'from devices'] : []),
  ];
  const rows: string[][] = [];
  const bytes = (count = 0) => (count < 1024 ? '' : formatBytes(count));
  const sum = (of: (phase: ProfileReport['phases'][number]) => number | undefined) =>
    phases.reduce((total, phase) => total + (of(phase) ?? 0), 0);
  const row = (
    name: string,
    own: number,
    cpu: number,
    moved: readonly [read?: number, written?: number, up?: number, down?: number],
  ) => {
    const [read, written, up, down] = moved.map(bytes);
    rows.push([
      name,
      seconds3(own),
      `${((100 * own) / seconds).toFixed(1)} %`,
      (cpu / Math.max(own, 1e-9)).toFixed(1),
      ...(knows ? [read, written] : []),
      ...(moves ? [up, down] : []),
    ]);
  };
  for (const one of phases)
    row(one.phase, one.seconds, one.cpuSeconds, [
      one.bytesRead,
      one.bytesWritten,
      one.bytesUp,
      one.bytesDown,
    ]);
  row(
    'in all',
    seconds,
    sum(({ cpuSeconds }) => cpuSeconds),
    [
      sum(({ bytesRead }) => bytesRead),
      sum(({ bytesWritten }) => bytesWritten),
      sum(({ bytesUp }) => bytesUp),
      sum(({ bytesDown }) => bytesDown),
    ],
  );
  return textTable({ head, colAligns: ['left', ...head.slice(1).map(() => 'right' as const)] }, rows);
}
