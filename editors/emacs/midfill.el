;;; midfill.el --- Suggestions at the cursor, by the language server midfill -*- lexical-binding: t; -*-

;; Copyright (c) 2026 the midfill developers

;; Author: the midfill developers
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.2"))
;; Keywords: convenience, languages, tools
;; URL: https://github.com/midfill/midfill
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What could come next stands in grey behind the cursor; TAB takes it.
;;
;;     (require 'midfill)
;;     (global-midfill-mode)
;;
;; The server decides, this shows: it is told of every change, waits for a
;; pause by itself and drops requests that are out of date.
;;
;; midfill has a connection of its own to its server (midfill-server.el), since
;; eglot manages one server for a buffer, and that is the one which knows the
;; language.  Both go on side by side, and whoever has neither eglot nor
;; lsp-mode needs nothing.  Where the user has made midfill the server of
;; eglot, or a client of lsp-mode, suggestions are asked for over theirs
;; (midfill-eglot.el, midfill-lsp.el), and no second server is started.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'midfill-connection)
(require 'midfill-server)
(require 'midfill-show)
(require 'midfill-sync)

;;; Commands

(defvar midfill-mode)

(defmacro midfill--define-key-command (name arguments docstring &rest body)
  "Define a command NAME with ARGUMENTS, DOCSTRING and BODY.
It does nothing where no suggestion is shown."
  (declare (indent 2) (doc-string 3))
  `(defun ,name ,arguments ,docstring
     (interactive)
     (cond ((midfill--view) ,@body)
           (midfill--shown (midfill--as-before)))))

(defun midfill--as-before ()
  "Do what the key does where nothing is shown: what is, holds no more.
The text was changed by no command, but by a timer or the like."
  (midfill--hide)
  (let ((command (key-binding (this-command-keys-vector) t)))
    (when (commandp command)
      (call-interactively (setq this-command command)))))

(midfill--define-key-command midfill-accept ()
  "Accept the suggestion."
  (midfill--accept 'all))

(midfill--define-key-command midfill-accept-word ()
  "Accept the next word of the suggestion."
  (midfill--accept 'word))

(midfill--define-key-command midfill-accept-line ()
  "Accept the next line of the suggestion."
  (midfill--accept 'line))

(midfill--define-key-command midfill-next ()
  "Show the next suggestion for this place."
  (midfill--cycle 1))

(midfill--define-key-command midfill-previous ()
  "Show the previous suggestion for this place."
  (midfill--cycle -1))

(midfill--define-key-command midfill-dismiss ()
  "Show the suggestion no more."
  (let ((shown midfill--shown) (item (midfill-candidate-item (midfill--candidate))))
    (midfill--leave)
    (midfill-connection-rejected (midfill--shown-connection shown) item)))

(defun midfill-complete ()
  "Ask for suggestions at point now, without waiting for a pause."
  (interactive "*")
  (unless midfill-mode
    (midfill-mode))
  (unless (midfill--ask midfill--invoked 0)
    (pcase-let ((`(,status . ,detail) (midfill-status)))
      (message "midfill: %s%s" status (if detail (concat ", " detail) "")))))

(defun midfill-toggle ()
  "Switch suggestions off, or on again."
  (interactive)
  (setq midfill--off (not midfill--off))
  (midfill--leave)
  (midfill-connection-execute (midfill-server-connection) "midfill.toggle" (list (if midfill--off :json-false t)))
  (force-mode-line-update t)
  (message "midfill: %s" (if midfill--off "off" "on")))

(defun midfill-restart ()
  "Start the server anew, with the settings as they are now."
  (interactive)
  (midfill--leave)
  (midfill--look-anew)
  (midfill-server-restart (midfill-server-connection)))

(defun midfill-stop ()
  "End the server until \\[midfill-restart]."
  (interactive)
  (midfill--leave)
  (midfill-server-stop nil))

(defun midfill-log ()
  "Show what the server has logged."
  (interactive)
  (pop-to-buffer (get-buffer-create midfill-server-log)))

(defun midfill--tell (command arguments format)
  "Show what COMMAND with ARGUMENTS gives, made a text by FORMAT."
  (midfill-connection-execute
   (or (midfill-server-connection) midfill-server-own (user-error "The server of midfill is not running"))
   command arguments
   (lambda (result)
     (let ((text (funcall format result)))
       (with-help-window "*midfill*"
         (princ text))))
   (lambda (failed)
     (message "midfill: %s" (plist-get failed :message)))))

(defun midfill--json (value)
  "VALUE as JSON to be read."
  (let ((json-encoding-pretty-print t) (json-encoding-default-indentation "  "))
    (json-encode value)))

(defun midfill-show-status ()
  "Show what the server counts, and what it uses."
  (interactive)
  (midfill--tell "midfill.status" nil #'midfill--json))

(defun midfill-explain ()
  "Show what became of the last request for this buffer, and what was sent."
  (interactive)
  (midfill--tell
   "midfill.explain" (list (car (midfill-connection-sync (or (midfill-server-connection) (user-error "No server of midfill has this buffer")))))
   (lambda (records)
     (if (seq-empty-p records)
         "Nothing was asked for this buffer yet.\n"
       (mapconcat (lambda (record)
                    (let ((text (plist-get record :explained)))
                      (concat (if (stringp text) (concat text "\n\n") "")
                              (midfill--json (cl-loop for (key value) on record by #'cddr
                                                      unless (eq key :explained) nconc (list key value))))))
                  records "\n\n")))))

;;; The mode

(defun midfill-status ()
  "What midfill is doing in this buffer, and a sentence about it or nil.
The first is ready, thinking, off, error or stopped."
  (cond (midfill--off '(off))
        ((not (midfill-server-connection))
         (cond (midfill-server-problem (cons 'error midfill-server-problem))
               (midfill-server-own '(thinking . "starting"))
               (t '(stopped))))
        (midfill-server-busy (cons 'thinking midfill-server-busy))
        ((or midfill--cancel midfill--timer) '(thinking))
        (midfill-server-problem (cons 'error midfill-server-problem))
        (t '(ready))))

(defun midfill-mode-line ()
  "What the mode line shows."
  (pcase-let ((`(,status . ,detail) (midfill-status)))
    (propertize (concat " midfill" (pcase status ('thinking "…") ('off "-off") ('error "!") ('stopped "-")))
                'face (and (eq status 'error) 'warning)
                'help-echo (format "midfill: %s%s" status (if detail (concat ", " detail) "")))))

(defvar midfill-completion-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'midfill-accept)
    (define-key map (kbd "<tab>") #'midfill-accept)
    (define-key map (kbd "M-f") #'midfill-accept-word)
    (define-key map (kbd "M-e") #'midfill-accept-line)
    (define-key map (kbd "M-n") #'midfill-next)
    (define-key map (kbd "M-p") #'midfill-previous)
    (define-key map [remap keyboard-quit] #'midfill-dismiss)
    map)
  "Keys that act while a suggestion is shown, and only then.")

(defvar midfill-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c \\") #'midfill-complete)
    map)
  "Keys of `midfill-mode'.")

(defvar midfill--key-maps (list (cons 'midfill--shown midfill-completion-map))
  "For `emulation-mode-map-alists': before the keys of other minor modes.")

;;;###autoload
(define-minor-mode midfill-mode
  "Show suggestions at the cursor.
\\<midfill-completion-map>While one is shown these keys act:

\\{midfill-completion-map}"
  :lighter (:eval (midfill-mode-line))
  :keymap midfill-mode-map
  (let ((change (if midfill-mode #'add-hook #'remove-hook)))
    (dolist (hook '(kill-buffer-hook change-major-mode-hook))
      (funcall change hook #'midfill--off-here nil t))
    (funcall change 'after-set-visited-file-name-hook #'midfill--renamed nil t))
  (if (not midfill-mode)
      (midfill--off-here)
    (add-to-list 'emulation-mode-map-alists 'midfill--key-maps)
    (add-hook 'post-command-hook #'midfill--post-command)
    (add-hook 'completion-in-region-mode-hook #'midfill--make-way)
    (add-hook 'company-completion-started-hook #'midfill--make-way)
    (midfill--look-anew)
    (setq midfill--asked-tick (buffer-chars-modified-tick))))

(defun midfill--off-here ()
  "Leave this buffer alone."
  (when (eq midfill--buffer (current-buffer))
    (midfill--leave))
  (midfill-sync-close))

(defun midfill--renamed ()
  "Tell the server the new name of this buffer."
  (midfill--off-here)
  (midfill--look-anew))

(defun midfill--turn-on ()
  "Turn `midfill-mode' on if this buffer is one of a file."
  (when (midfill-server-wanted-p)
    (midfill-mode)))

;;;###autoload
(define-globalized-minor-mode global-midfill-mode midfill-mode midfill--turn-on
  :group 'midfill
  :predicate '(prog-mode conf-mode))

(defun midfill--buffers ()
  "The buffers that are shown and want suggestions."
  (cl-remove-if-not (lambda (buffer) (buffer-local-value 'midfill-mode buffer))
                    (delete-dups (mapcar #'window-buffer (window-list-1 nil 'no-minibuffer t)))))

(setq midfill-server-buffers-function #'midfill--buffers)

;; For those who have only the folder in their `load-path'.
(autoload 'midfill-eglot-setup "midfill-eglot")
(autoload 'midfill-lsp-setup "midfill-lsp")

(provide 'midfill)
;;; midfill.el ends here
