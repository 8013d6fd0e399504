[[ ]] && [ ]; if [ a = b -o "" ]; then export A=${B:-"$(c "d")"}; fi
X+=(1 "$@"); x.py ${X[@]}