// What the page reads: the contract of `explain --json`, and what the program adds to it for the page.

export type {
  Band,
  Connection,
  End,
  Exchange,
  Finding,
  Fix,
  Frames,
  Gap,
  Model,
  Omitted,
  Pair,
  Report,
  Server,
  Setup,
  SideName as Side,
  Span,
} from './contract';

export interface Cause {
  id: string;
  class: 'I' | 'A' | 'T' | 'U';
  owner: 'application' | 'tcp' | 'path' | 'none';
  group: string;
  span: boolean;
  title: string;
  what: string;
  page: string;
}
export interface TrackRow {
  connection: number;
  chunk: number;
  at: number;
  kept: number;
  total: number;
}
export interface Page {
  frames_before: number[];
  causes: Cause[];
  tracks: TrackRow[];
  served: { name: string } | null;
}
