// What stands at the axes: bytes in powers of two, times and rates in powers of ten.

export type Kind = 'bytes' | 'time' | 'rate';

export const POWERS = Array.from({ length: 44 }, (_, i) => 2 ** i);
export const DECIMALS = Array.from({ length: 14 }, (_, i) => [1, 2, 5].map(n => n * 10 ** i)).flat();

export function timeLabel(ns: number, step: number): string {
  const [per, unit] =
    Math.abs(ns) < 1e6 && step < 1e6
      ? [1e3, 'µs']
      : step < 1e6 || (Math.abs(ns) < 1e9 && step < 1e9)
        ? [1e6, 'ms']
        : [1e9, 's'];
  const digits = Math.max(0, Math.ceil(Math.log10(per / step) - 1e-9));
  return `${(ns / per).toFixed(Math.min(digits, 6))} ${unit}`;
}

export function axisLabels(splits: number[], kind: Kind): string[] {
  const max = Math.max(...splits.map(Math.abs));
  const step = splits.length > 1 ? splits[1] - splits[0] : max || 1;
  const units: [number, string][] =
    kind === 'bytes'
      ? [
          [2 ** 30, 'GiB'],
          [2 ** 20, 'MiB'],
          [1024, 'KiB'],
          [1, 'B'],
        ]
      : kind === 'time'
        ? [
            [1e9, 's'],
            [1e6, 'ms'],
            [1e3, 'µs'],
            [1, 'ns'],
          ]
        : [
            [1e9, 'Gbit/s'],
            [1e6, 'Mbit/s'],
            [1e3, 'kbit/s'],
            [1, 'bit/s'],
          ];
  const largest = units.findIndex(u => max >= u[0] * 0.999);
  // As many digits as tell the steps apart and are true: a quarter of a KiB is not 0.3.
  const needed = (per: number) => [0, 1, 2].find(n => Math.abs(((step / per) * 10 ** n) % 1) < 1e-9) ?? 3;
  // 2.125 KiB are longer to read, and to write, than 2176 B.
  let at = largest < 0 ? units.length - 1 : largest;
  if (kind === 'bytes' && needed(units[at][0]) > 1 && at + 1 < units.length) at++;
  const [per, unit] = units[at];
  const digits = needed(per);
  return splits.map(v => `${(v / per).toFixed(v === 0 ? 0 : digits)} ${unit}`);
}
