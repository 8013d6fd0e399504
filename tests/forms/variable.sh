#!/bin/bash
for s in *.py; do
  python3 $s --alpha 0.5
done
