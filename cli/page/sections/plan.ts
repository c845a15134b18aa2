import { planFlow, type PlanEdge } from '../../../api/training/plans/plan-flow.ts';
import { formatBytes, formatCount, formatFlops, formatMilliseconds } from '../../../engine/format.ts';
import type { PhysicalPlan } from '../../../index.ts';
import { Graph, layout } from '../../generated/charts.js';
import { planVerdict } from '../../report/verdict.ts';
import { element, svgElement } from '../document.ts';
import type { PageTable, Section, Report } from '../page.ts';

/** The plan as a graph, its memory by place, its stages with planned and measured cost, and its reasons. */
export function planSection(plan: PhysicalPlan): Section {
  const { stages } = planFlow(plan);
  const memory: PageTable = {
    title: 'Memory at its peak, as planned',
    head: ['place', 'bytes'],
    rows: Object.entries(plan.memory).map(([place, bytes]) => [place, formatBytes(bytes)]),
  };
  const reasons = [
    ...stages.flatMap(({ stage }) => (stage.reasons ?? []).map((reason) => [stage.name, reason])),
    ...plan.reasons.map((reason) => ['plan', reason]),
  ];
  return {
    heading: 'Plan',
    text: `${plan.algorithm.toUpperCase()} on ${plan.devices.map(({ place, description }) => `${place} (${description})`).join(', ')}. Dashed arrows lead from one round to the next.`,
    drawing: () => planGraph(plan),
    tables: [
      stageTable(plan),
      memory,
      { title: 'Reasons', head: ['stage', 'reason'], rows: reasons, numbers: () => false },
    ],
  };
}

/** The stages in the order of the plan, with their work and their planned and measured cost. */
function stageTable({ measured, ...plan }: PhysicalPlan): PageTable {
  const optional = <T>(value: T | undefined, format: (known: T) => string) =>
    value === undefined ? '' : format(value);
  const rows = planFlow(plan).stages.map(({ phase, stage, times }) => {
    const own = measured?.[stage.name];
    const { name, at, kernel = '', tasks, bytesRead, bytesWritten, flops } = stage;
    return [
      name,
      phase,
      [...new Set(at)].join(' '),
      kernel,
      optional(tasks, formatCount),
      formatCount(times),
      optional(bytesRead, formatBytes),
      optional(bytesWritten, formatBytes),
      optional(flops, formatFlops),
      ...(measured === undefined
        ? []
        : [
            optional(own?.wallMilliseconds, formatMilliseconds),
            optional(own?.milliseconds, formatMilliseconds),
            own === undefined || own.bytesUp + own.bytesDown === 0
              ? ''
              : `${formatBytes(own.bytesUp)} up, ${formatBytes(own.bytesDown)} down`,
          ]),
    ];
  });
  const planned = ['stage', 'phase', 'at', 'kernel', 'tasks', 'times', 'reads', 'writes', 'work'];
  return {
    title: 'Stages',
    head: [...planned, ...(measured === undefined ? [] : ['wall time', 'time in tasks', 'moved'])],
    rows,
    numbers: (column) => column > 3,
  };
}

/** Pixels of a letter (wide enough for wide letters) and of a line. */
const LETTER = 7;
const LINE = 15;

/** Most letters of a line. */
const MOST_LETTERS = 44;

type PlanStage = ReturnType<typeof planFlow>['stages'][number];

/** A box's centre and size. */
interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/**
 * The plan as a graph: a box for each stage with its planned and measured cost, and an arrow from each writer
 * of data to its reader.
 */
function planGraph(plan: PhysicalPlan): HTMLElement {
  const { stages, edges: all } = planFlow(plan);
  const edges = direct(all);
  const texts = stages.map((stage) => linesOf(stage, plan));
  const graph = laidOut(texts, edges);
  const { width = 0, height = 0 } = graph.graph() as { readonly width?: number; readonly height?: number };
  const arrows = edges.map((edge, at) => {
    const title = `${stages[edge.from].stage.name} to ${stages[edge.to].stage.name}: ${edge.data.join(', ')}`;
    return arrowOf(graph, edge, at, `${title}${edge.back ? ', in the next round' : ''}`);
  });
  const boxes = stages.map(({ phase }, at) => boxOf(graph.node(String(at)) as Box, phase, texts[at]));
  const svg = svgElement(
    'svg',
    {
      class: 'plan',
      viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
      width: Math.ceil(width),
      height: Math.ceil(height),
      role: 'img',
      'aria-label': `Stages in order: ${stages.map(({ stage }) => stage.name).join(', ')}`,
    },
    arrowHead(),
    ...arrows,
    ...boxes,
  );
  return element('div.scroll', svg);
}

/** The lines of a box: name, places, kernel, planned cost, measured time. */
function linesOf({ stage, times }: PlanStage, plan: PhysicalPlan): string[] {
  const { name, kernel, partitions, bytesRead, bytesWritten, exchange } = stage;
  const measured = plan.measured?.[name];
  const cost = [
    bytesRead === undefined ? '' : `reads ${formatBytes(bytesRead)}`,
    bytesWritten === undefined ? '' : `writes ${formatBytes(bytesWritten)}`,
  ]
    .filter((text) => text !== '')
    .join(', ');
  const took =
    measured && (measured.wallMilliseconds > 0 ? measured.wallMilliseconds : measured.milliseconds);
  return [
    `${name}${times > 1 ? ` × ${times}` : ''}`,
    `${placesText(stage.at)}${partitions ? `, ${partitions.p} x ${partitions.q}` : ''}`,
    ...[kernel, cost, exchange].flatMap((text) => text || []),
    ...(took === undefined ? [] : [`measured ${formatMilliseconds(took)}`]),
  ].map((text) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS - 1)}…` : text));
}

/**
 * The graph with positions for boxes and arrows. Arrows to the next round are laid out in the opposite
 * direction.
 */
function laidOut(texts: readonly (readonly string[])[], edges: readonly PlanEdge[]): Graph {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: 26, ranksep: 34, marginx: 10, marginy: 10 });
  graph.setDefaultEdgeLabel(() => ({}));
  texts.forEach((lines, at) =>
    graph.setNode(String(at), {
      width: 20 + LETTER * Math.max(...lines.map((text) => text.length)),
      height: 12 + LINE * lines.length,
    }),
  );
  edges.forEach(({ from, to, back }, at) =>
    graph.setEdge(String(back ? to : from), String(back ? from : to), {}, String(at)),
  );
  layout(graph);
  return graph;
}

function arrowOf(graph: Graph, { from, to, back }: PlanEdge, at: number, title: string): SVGElement {
  const { points } = graph.edge(String(back ? to : from), String(back ? from : to), String(at)) as {
    readonly points: readonly { readonly x: number; readonly y: number }[];
  };
  const path = (back ? points.toReversed() : points)
    .map(({ x, y }, k) => `${k === 0 ? 'M' : 'L'}${x.toFixed(1)},${y.toFixed(1)}`)
    .join('');
  return svgElement(
    'path',
    { d: path, class: back ? 'edge back' : 'edge', 'marker-end': 'url(#arrow)' },
    svgElement('title', title),
  );
}

function boxOf({ x, y, width, height }: Box, phase: string, lines: readonly string[]): SVGElement {
  const [left, top] = [x - width / 2, y - height / 2];
  return svgElement(
    'g',
    { class: `stage ${phase}` },
    svgElement('rect', { x: left, y: top, width, height, rx: 6 }),
    ...lines.map((text, k) =>
      svgElement(
        'text',
        { x: left + 10, y: top + 18 + LINE * k, ...(k === 0 ? { class: 'name' } : {}) },
        text,
      ),
    ),
  );
}

function arrowHead(): SVGElement {
  return svgElement(
    'defs',
    svgElement(
      'marker',
      { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' },
      svgElement('path', { d: 'M0,0L8,4L0,8z' }),
    ),
  );
}

/** "cpu", "gpu:0 to gpu:3". */
function placesText(at: readonly string[]): string {
  const places = [...new Set(at)];
  const inOrder = places.length > 2 && places.every((place, k) => place === `gpu:${k}`);
  return inOrder ? `${places[0]} to ${places[places.length - 1]}` : places.join(' ');
}

/** The arrows that are not implied by a chain of others, and all arrows to the next round. */
function direct(edges: readonly PlanEdge[]): readonly PlanEdge[] {
  const forward = edges.filter(({ back }) => !back);
  const reaches = (from: number, to: number, without: PlanEdge): boolean =>
    forward.some(
      (edge) => edge !== without && edge.from === from && (edge.to === to || reaches(edge.to, to, without)),
    );
  return edges.filter((edge) => (edge.back ? edge.from !== edge.to : !reaches(edge.from, edge.to, edge)));
}

/** The page of `plan`. */
export function planPage(plan: PhysicalPlan): Report {
  return {
    title: `Plan: ${plan.algorithm.toUpperCase()}`,
    lead: { verdict: planVerdict(plan.memory) },
    sections: [planSection(plan)],
  };
}
